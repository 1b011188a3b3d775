// telegraf: updates are handled one after the other.
import { Telegraf, session } from "telegraf";
import { measure } from "./measure.mjs";

const bot = new Telegraf("1:TOKEN");
bot.botInfo = { id: 1, is_bot: true, first_name: "Bench", username: "bench_bot" };
let sent = 0;
// Each update has a client of its own, so each is told not to use the network.
bot.use((ctx, next) => {
  ctx.telegram.callApi = async () => {
    sent++;
    return { message_id: sent, date: 0, chat: { id: 1, type: "private" }, text: "" };
  };
  return next();
});

if (process.argv[2] === "session") {
  bot.use(session({ defaultSession: () => ({ visits: 0 }) }));
  bot.hears("hi", (ctx) => {
    ctx.session.visits++;
    return ctx.reply(ctx.session.visits === 1 ? "Welcome!" : "Welcome back!");
  });
} else {
  bot.hears("hi", (ctx) => ctx.reply("Hello!"));
}
await measure((update) => bot.handleUpdate(update), () => sent);
