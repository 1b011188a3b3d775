// Feeds a bot with updates of many chats and prints how fast it answered.

/// `handle(update)` gives one update to the bot; `replies()` is how many it has sent.
export async function measure(handle, replies) {
  const chats = Number(process.argv[3]);
  const messages = Number(process.argv[4]);
  let number = 0;
  const deliver = async (count) => {
    for (const end = number + count; number < end; number++) await handle(update(number, chats));
  };

  // Twice what is measured, so that the code has been compiled.
  await deliver(Math.max(2 * messages, chats));
  const before = replies();
  const begun = process.hrtime.bigint();
  await deliver(messages);
  const took = Number(process.hrtime.bigint() - begun);
  if (replies() - before !== messages) throw new Error(`${replies() - before} replies`);

  const times = [];
  for (let count = 0; count < Math.min(messages, 20000); count++) {
    const begun = process.hrtime.bigint();
    await deliver(1);
    times.push(Number(process.hrtime.bigint() - begun));
  }
  times.sort((a, b) => a - b);
  const quantile = (share) => times[Math.floor(times.length * share)] / 1e3;
  const rate = messages / (took / 1e9);
  console.log(JSON.stringify({ rate, p50: quantile(0.5), p99: quantile(0.99) }));
}

/// Each chat has its turn.
function update(number, chats) {
  const id = 1000000000 + (number % chats);
  const from = { id, is_bot: false, first_name: "Ana" };
  const chat = { id, type: "private", first_name: "Ana" };
  return { update_id: number, message: { message_id: number, date: 0, chat, from, text: "hi" } };
}
