// grammY: updates are handled one after the other, as its simple long polling does it.
import { Bot, session } from "grammy";
import { measure } from "./measure.mjs";

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
// A transformer that does not call the one before it: nothing goes to the network.
bot.api.config.use(async () => {
  sent++;
  return { ok: true, result: { message_id: sent, date: 0, chat: { id: 1, type: "private" }, text: "" } };
});

if (process.argv[2] === "session") {
  bot.use(session({ initial: () => ({ visits: 0 }) }));
  bot.hears("hi", (ctx) => {
    ctx.session.visits++;
    return ctx.reply(ctx.session.visits === 1 ? "Welcome!" : "Welcome back!");
  });
} else {
  bot.hears("hi", (ctx) => ctx.reply("Hello!"));
}
await measure((update) => bot.handleUpdate(update), () => sent);
