/**
 * Whether a pane's scroller keeps to the end of a growing answer. Pure: it is told measurements
 * and says what to do.
 *
 * The reader's own movement is told from growth by comparing with the place where the page last
 * parked the view, never with the live maximum: between two frames only a reader lowers scrollTop.
 */

// Fractional zoom levels round scrollTop and scrollHeight apart by up to this many pixels.
const TOLERANCE_PX = 2;

const isAtEnd = ({ top, height, viewport }) => height - viewport - top <= TOLERANCE_PX;

export class Follow {
  #following = true;
  #parked = 0;
  #height = 0;

  get following() {
    return this.#following;
  }

  /** The reader turned the wheel, dragged or pressed a key upwards, or is about to open a fold. */
  release() {
    this.#following = false;
  }

  /** The reader asked for the latest. */
  resume() {
    this.#following = true;
  }

  /** The scroller moved, by whatever cause. */
  scrolled(measure) {
    if (isAtEnd(measure)) this.#following = true;
    else if (this.#wasLowered(measure)) this.#following = false;
  }

  /** Before the content grows: a reader who has moved since the last park is let go. */
  beforeGrowth(measure) {
    if (this.#wasLowered(measure) && !isAtEnd(measure)) this.#following = false;
  }

  /** The page has put the view to the end. */
  parked({ top, height }) {
    this.#parked = top;
    this.#height = height;
  }

  #wasLowered({ top, height }) {
    return height === this.#height && top < this.#parked - TOLERANCE_PX;
  }
}
