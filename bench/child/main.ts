/** A measured process: it does what it is told over IPC, and ends with whoever started it. */
import type { Answer, Commands, Request, WorkRequest } from './commands.ts';
import { Counter } from './counter.ts';
import { measurements, programs } from './programs.ts';

let counter = new Counter(1, false);
const ends: (() => Promise<void>)[] = [];

const commands: Commands = {
  load: async (program) => void (await programs[program]()),
  async work({ program, url, options, sampleEvery, noteStarts }: WorkRequest) {
    const counting = new Counter(sampleEvery, noteStarts);
    counter = counting;
    const start = await programs[program]();
    ends.push(await start({ url, onJob: (n) => counting.count(n) }, options));
  },
  untilHandled: (count, timeoutMs) => counter.untilCount(count, timeoutMs),
  count: async () => counter.handled.count,
  handled: async () => counter.handled,
  async memory() {
    globalThis.gc?.();
    const { heapUsed, rss } = process.memoryUsage();
    return { heapBytes: heapUsed, rssBytes: rss, maxRssBytes: process.resourceUsage().maxRSS * 1_024 };
  },
  async measure(name, request) {
    const measurement = await measurements[name]();
    // Whoever calls it names the measurement beside its request.
    return await measurement(request as never);
  },
  async stop() {
    for (const end of ends.splice(0).reverse()) await end();
  },
};

process.on('message', async ({ id, method, args }: Request) => {
  const answer = await carryOut(method, args).then(
    (result): Answer => ({ id, result }),
    (error: unknown): Answer => ({
      id,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }),
  );
  process.send?.(answer);
});
process.on('disconnect', () => process.exit());

async function carryOut(method: keyof Commands, args: readonly unknown[]): Promise<unknown> {
  // `Child.call` has checked the arguments against the method.
  const command = commands[method] as (...args: readonly unknown[]) => Promise<unknown>;
  return await command(...args);
}
