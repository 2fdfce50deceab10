import { Problem, createApi } from "/static/js/api.js";
import { FakeClock } from "./fakes.js";
import { equal, ok, test } from "./suite.js";

/** A server in the test's hands: it answers, piece by piece, when it is told to. */
function setUp() {
  const clock = new FakeClock();
  const world = { clock, asked: [] };
  const send = (url, options) =>
    new Promise((resolve, reject) => {
      world.asked.push({ url, ...options });
      const body = new ReadableStream({ start: (controller) => (world.body = controller) });
      options.signal.addEventListener("abort", () => {
        world.body.error(options.signal.reason);
        reject(options.signal.reason);
      });
      world.begin = (status = 200) => resolve(new Response(status === 204 ? null : body, { status }));
      world.fail = reject;
    });
  world.api = createApi("token", { send, after: clock.after });
  world.say = (text) => world.body.enqueue(new TextEncoder().encode(text));
  return world;
}

const settled = () => new Promise((resolve) => setTimeout(resolve));
const problemOf = (reply) => reply.then(() => null, (problem) => problem);

test("a reply is read whole", async () => {
  const world = setUp();
  const reply = world.api.get("/x");
  world.begin();
  world.say('{"text":"ż');
  world.say('ółć"}');
  world.body.close();
  equal(await reply, { text: "żółć" });
});

test("a reply that never begins ends in a problem", async () => {
  const world = setUp();
  const problem = problemOf(world.api.get("/x"));
  world.clock.pass(30_000);
  ok((await problem) instanceof Problem);
  ok((await problem).message.startsWith("The server did not answer."));
});

test("a reply that stops in the middle ends in a problem", async () => {
  const world = setUp();
  const problem = problemOf(world.api.get("/x"));
  world.begin();
  world.say('{"text":');
  await settled();
  world.clock.pass(30_000);
  ok((await problem) instanceof Problem);
});

test("a reply that comes slowly, but comes, is waited for", async () => {
  const world = setUp();
  const reply = world.api.get("/x");
  world.clock.pass(29_000);
  world.begin();
  await settled();
  for (const piece of ["[", "1", ",", "2", "]"]) {
    world.say(piece);
    await settled();
    world.clock.pass(29_000);
  }
  world.body.close();
  equal(await reply, [1, 2]);
});

test("a reply that breaks off ends in a problem", async () => {
  const world = setUp();
  const problem = problemOf(world.api.get("/x"));
  world.begin();
  world.say('{"text":');
  await settled();
  world.body.error(new TypeError("network error"));
  ok((await problem).message.startsWith("The server cannot be reached."));
});

test("a request that cannot be sent ends in a problem", async () => {
  const world = setUp();
  const problem = problemOf(world.api.post("/x"));
  world.fail(new TypeError("Failed to fetch"));
  ok((await problem).message.startsWith("The server cannot be reached."));
});

test("a reply that is no JSON, as of a network that wants a log-in first, ends in a problem", async () => {
  const world = setUp();
  const problem = problemOf(world.api.get("/x"));
  world.begin();
  world.say("<!doctype html>");
  world.body.close();
  ok((await problem).message.startsWith("Something between this page and its server"));
});

test("a refusal is told in the server's words", async () => {
  const world = setUp();
  const problem = problemOf(world.api.post("/x"));
  world.begin(409);
  world.say('{"detail":"Answers are still coming.","code":"turn_running"}');
  world.body.close();
  const { message, status, code, gone } = await problem;
  equal([message, status, code, gone], ["Answers are still coming.", 409, "turn_running", false]);
});

test("a refusal without words is told by its status", async () => {
  const world = setUp();
  const problem = problemOf(world.api.get("/x"));
  world.begin(502);
  world.say("<h1>Bad gateway</h1>");
  world.body.close();
  equal((await problem).message, "The server answered with status 502.");
});

test("what is gone is told by 404", async () => {
  const world = setUp();
  const problem = problemOf(world.api.get("/x"));
  world.begin(404);
  world.body.close();
  equal((await problem).gone, true);
});

test("a reply without a body is null", async () => {
  const world = setUp();
  const reply = world.api.remove("/x");
  world.begin(204);
  equal(await reply, null);
});

test("a request carries the token, and its body as JSON", () => {
  const world = setUp();
  world.api.post("/x", { a: 1 });
  const [{ url, method, headers, body }] = world.asked;
  equal([url, method, headers["X-CSRFToken"], body], ["/x", "POST", "token", '{"a":1}']);
});

test("a request for certain outlives the page that makes it", () => {
  const world = setUp();
  world.api.postForCertain("/x");
  const [{ method, keepalive }] = world.asked;
  equal([method, keepalive], ["POST", true]);
});
