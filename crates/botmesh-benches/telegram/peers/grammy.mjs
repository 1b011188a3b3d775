// grammY: updates are handled one after the other, as its simple long polling does it.
import { readFileSync } from "node:fs";
import { Bot } from "grammy";

const lines = readFileSync(process.argv[2], "utf8").trimEnd().split("\n");
const warm = Number(process.argv[3]);
const botInfo = {
  id: 1,
  is_bot: true,
  first_name: "Bench",
  username: "bench_bot",
  can_join_groups: true,
  can_read_all_group_messages: false,
  supports_inline_queries: false,
};
const bot = new Bot("1:TOKEN", { botInfo });
let sent = 0;
let bytes = 0;
// A transformer that does not call the one before it: nothing goes to the network.
bot.api.config.use(async (_previous, _method, payload) => {
  sent++;
  bytes += JSON.stringify(payload).length;
  return { ok: true, result: { message_id: sent, date: 0, chat: { id: 1, type: "private" }, text: "" } };
});
bot.hears("hi", (ctx) => ctx.reply("Hello!"));

for (const line of lines.slice(0, warm)) await bot.handleUpdate(JSON.parse(line));
const cpu = process.cpuUsage();
const begun = process.hrtime.bigint();
for (const line of lines.slice(warm)) await bot.handleUpdate(JSON.parse(line));
const wall = Number(process.hrtime.bigint() - begun) / 1e9;
const used = process.cpuUsage(cpu);
if (sent !== lines.length || bytes === 0) throw new Error(`${sent} replies`);
console.log(JSON.stringify({ messages: lines.length - warm, wall, cpu: (used.user + used.system) / 1e6 }));
