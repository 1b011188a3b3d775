// Chat SDK with its Redis state: a lock for each chat, which all processes share. Started once for
// each process; the bench begins all of them at once by a line on standard input.
import { createInterface } from "node:readline";
import { createRedisState } from "@chat-adapter/state-redis";
import { Chat, Message, parseMarkdown } from "chat";

const [strategy, url] = process.argv.slice(2);
const [index, chats, messages, atOnce] = process.argv.slice(4).map(Number);

const adapter = {
  name: "mock",
  userName: "bench",
  initialize: async () => {},
  channelIdFromThreadId: (thread) => thread,
  isDM: () => true,
  encodeThreadId: (data) => `mock:${data.id}`,
  decodeThreadId: (thread) => ({ id: thread.split(":")[1] }),
  renderFormatted: () => "",
  postMessage: async (threadId) => ({ id: "1", threadId, raw: {} }),
  startTyping: async () => {},
  fetchMessages: async () => ({ messages: [] }),
};
const state = createRedisState({ url, keyPrefix: "bench" });
const concurrency = strategy === "queue" ? { strategy, maxQueueSize: 1000 } : strategy;
const bot = new Chat({ userName: "bench", adapters: { mock: adapter }, state, concurrency, logger: "silent" });

let [handled, skipped, refused, ended] = [0, 0, 0, 0];
bot.onDirectMessage(async (thread, _message, _channel, context) => {
  await thread.post("Hello!");
  handled++;
  skipped += context?.skipped?.length ?? 0;
  ended = Date.now();
});
await bot.initialize();

const formatted = parseMarkdown("hi");
const author = { userId: "1", userName: "ana", fullName: "Ana", isBot: false, isMe: false };
const deliver = async (number) => {
  // The same chats in the same order as the bench's own bot has them.
  const threadId = `mock:${(number * 7919 + index * 104729) % chats}`;
  const metadata = { dateSent: new Date(0), edited: false };
  const id = `${index}-${number}`;
  const attachments = [];
  const message = new Message({ id, threadId, text: "hi", formatted, raw: {}, author, metadata, attachments });
  try {
    await bot.handleIncomingMessage(adapter, threadId, message);
  } catch {
    // The chat's lock is held by another message.
    refused++;
  }
};
let next = 0;
const run = async (count) => {
  const end = next + count;
  const work = async () => {
    while (next < end) await deliver(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
};
const settle = async () => {
  // What waits in a queue may be handled here or elsewhere.
  for (let seen = -1; seen !== handled; ) {
    seen = handled;
    await new Promise((done) => setTimeout(done, 1500));
  }
};

// So that the code has been compiled.
await run(Math.floor(messages / 4) + 1);
await settle();

console.log("ready");
await new Promise((begin) => createInterface({ input: process.stdin }).once("line", begin));
const begun = Date.now();
[handled, skipped, refused] = [0, 0, 0];
await run(messages);
await settle();
console.log(JSON.stringify({ begun, ended, handled, skipped, refused }));
process.exit(0);
