/** The protocol counts Unicode code points; JavaScript strings are indexed by UTF-16 units. */

const isHighSurrogate = (unit) => unit >= 0xd800 && unit <= 0xdbff;
const isLowSurrogate = (unit) => unit >= 0xdc00 && unit <= 0xdfff;

/** Give the index that lies `count` code points after the index `from`, or the end of the text. */
export function advance(text, from, count) {
  let index = from;
  for (let left = count; left > 0 && index < text.length; left -= 1) {
    const isPair = isHighSurrogate(text.charCodeAt(index)) && isLowSurrogate(text.charCodeAt(index + 1));
    index += isPair ? 2 : 1;
  }
  return index;
}
