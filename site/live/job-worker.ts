/**
 * One worker process of the page: the library's own worker, in a Web Worker. The page can end it at any moment, as
 * `kill -9` ends a process: then nothing of it says goodbye.
 */
import { createWorker, handle, type Logger } from 'drizzle-queue';
import { Connection, drizzleOn } from './connection.ts';
import { queue, sendReceipt } from './jobs.ts';

export type ToWorker =
  | { readonly type: 'start'; readonly name: string; readonly port: MessagePort; readonly handler: string }
  | { readonly type: 'handler'; readonly handler: string }
  | { readonly type: 'stop' };

export type FromWorker =
  | { readonly type: 'started' }
  | { readonly type: 'stopped' }
  | { readonly type: 'handler'; readonly error: string | undefined }
  | { readonly type: 'log'; readonly text: string };

type HandlerOfVisitor = (context: unknown) => unknown;

let call: HandlerOfVisitor | undefined;
let stop: (() => Promise<void>) | undefined;

const say = (message: FromWorker) => postMessage(message);
const log = (_: object, text: string) => say({ type: 'log', text });
const logger: Logger = { debug: log, info: log, warn: log, error: log };

/** Takes the visitor's handler from now on; a job that runs ends with the one that it began with. */
async function replaceHandler(text: string): Promise<void> {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
  try {
    const module: unknown = await import(/* @vite-ignore */ url);
    const exported: unknown = Reflect.get(Object(module), 'default');
    if (typeof exported !== 'function') throw new TypeError('Write: export default async function …');
    // A function of the visitor's, who says what it takes.
    call = exported as HandlerOfVisitor;
    say({ type: 'handler', error: undefined });
  } catch (error) {
    say({ type: 'handler', error: String(error) });
  } finally {
    URL.revokeObjectURL(url);
  }
}

async function start({ name, port, handler }: Extract<ToWorker, { type: 'start' }>): Promise<void> {
  await replaceHandler(handler);
  const worker = createWorker(drizzleOn(new Connection(port)), {
    queue,
    handlers: [
      handle(sendReceipt, async (context) => {
        if (call === undefined) throw new Error('The handler does not compile');
        return await call(context);
      }),
    ],
    name,
    concurrency: 1,
    // The shortest that the library takes. On a driver with sessions it would be the few seconds of reconnectMs.
    silentMs: 15_000,
    shutdownTimeoutMs: 10_000,
    log: logger,
  });
  worker.on('began', ({ job }) => log({}, `begins job ${job.id}, attempt ${job.attempt}`));
  stop = () => worker.stop();
  await worker.start();
  say({ type: 'started' });
}

async function obey(message: ToWorker): Promise<void> {
  if (message.type === 'start') await start(message);
  else if (message.type === 'handler') await replaceHandler(message.handler);
  else {
    await stop?.();
    say({ type: 'stopped' });
  }
}

addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  // A rejection that nobody handles would not reach the page.
  obey(data).catch((error: unknown) => say({ type: 'log', text: `has failed: ${error}` }));
});
