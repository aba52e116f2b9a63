/**
 * What Node.js, Bun and Deno offer, and browsers and edge runtimes do not. It is asked for when it is used:
 * a static import of `node:…` would break every bundle for those, of apps that only enqueue as well.
 */

// A browser has no `process`, and some bundlers' stand-ins for it are almost empty.
const host: Partial<Pick<NodeJS.Process, 'pid' | 'on' | 'off' | 'emitWarning'>> & {
  readonly getBuiltinModule?: typeof process.getBuiltinModule;
} = globalThis.process ?? {};

// Browsers have no `setImmediate`, and some edge runtimes neither it nor channels.
const timers: Partial<Pick<typeof globalThis, 'setImmediate' | 'MessageChannel'>> = globalThis;

/** Names this process for people: its host and its number, as far as it has them. */
export function processName(): string {
  return `${host.getBuiltinModule?.('node:os').hostname() ?? 'no-host'}:${host.pid ?? 0}`;
}

/**
 * How long this machine has been up, in milliseconds, including the time in which it was suspended. Setting
 * its clock does not change that. 0 where the runtime cannot tell.
 */
export function uptimeMs(): number {
  try {
    return (host.getBuiltinModule?.('node:os').uptime() ?? 0) * 1_000;
  } catch {
    // Deno asks for the permission, and some sandboxes refuse it.
    return 0;
  }
}

/** Lets more than ten listen to a signal: of the eleventh, Node.js warns. */
export function allowManyListeners(signal: AbortSignal): void {
  host.getBuiltinModule?.('node:events').setMaxListeners(0, signal);
}

/** Warns as the runtime does: Node.js lets an app listen for it, or turn it off by its name. */
export function warn(warning: string): void {
  if (host.emitWarning) host.emitWarning(warning, 'DrizzleQueueWarning');
  else console.warn(warning);
}

/** Runs a task in an async context of its own, and returns what the task returns. */
export type InContext = <T>(task: () => T) => T;

/**
 * Keeps the values of `AsyncLocalStorage` as they are now. The returned function runs each task with these,
 * and what a task changes by `enterWith` stays with the task and what it starts. Where the runtime has no
 * such storage it only calls the task.
 */
export function keepContext(): InContext {
  const AsyncResource = host.getBuiltinModule?.('node:async_hooks')?.AsyncResource;
  if (AsyncResource === undefined) return (task) => task();
  const kept = new AsyncResource('drizzle-queue');
  const inherit = () => new AsyncResource('drizzle-queue');
  // One for each task: before Node.js 24 `enterWith` changes the resource itself, for all that run in it.
  return (task) => kept.runInAsyncScope(inherit).runInAsyncScope(task);
}

/** Runs `task` once the event loop has gone round: after whatever else this turn of it has to do. */
export function onNextTurn(task: () => void): void {
  if (timers.setImmediate) timers.setImmediate(task);
  else if (timers.MessageChannel) byMessage(task);
  else setTimeout(task);
}

export function nextTurn(): Promise<void> {
  return new Promise(onNextTurn);
}

/** Browsers delay each timer that another timer has set by 4 ms, but no message. */
function byMessage(task: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.addEventListener('message', () => {
    // An open port is never collected.
    port1.close();
    task();
  });
  port1.start();
  port2.postMessage(undefined);
}

/** A timer that keeps no process from ending, where there is one to keep. */
export function setLooseTimeout(task: () => void, ms: number): void {
  const timer: { unref?(): unknown } | number = setTimeout(task, ms);
  if (typeof timer === 'object') timer.unref?.();
}

/** Calls `listener` whenever the process is asked to end. Does nothing in a runtime without such signals. */
export function onEndSignal(listener: () => void): void {
  for (const signal of ['SIGINT', 'SIGTERM']) host.on?.(signal, listener);
}

/** Undoes {@link onEndSignal}. */
export function offEndSignal(listener: () => void): void {
  for (const signal of ['SIGINT', 'SIGTERM']) host.off?.(signal, listener);
}

export function isConsole(logger: object): boolean {
  const Console = host.getBuiltinModule?.('node:console').Console;
  return logger === console || (Console !== undefined && logger instanceof Console);
}

/** A value that the calls of one function see, awaited ones too. */
export interface AsyncContext<T> {
  run<R>(value: T, task: () => R): R;
  getStore(): T | undefined;
}

/** `undefined` in a browser. */
export function asyncContext<T>(): AsyncContext<T> | undefined {
  const AsyncLocalStorage = host.getBuiltinModule?.('node:async_hooks').AsyncLocalStorage;
  return AsyncLocalStorage === undefined ? undefined : new AsyncLocalStorage<T>();
}
