/**
 * What Node.js, Bun and Deno offer, and browsers and edge runtimes do not. It is asked for when it is used:
 * a static import of `node:…` would break every bundle for those, of apps that only enqueue as well.
 */

// A browser has no `process`, and some bundlers' stand-ins for it are almost empty.
const host: Partial<Pick<NodeJS.Process, 'pid' | 'on' | 'off' | 'emitWarning'>> & {
  readonly getBuiltinModule?: typeof process.getBuiltinModule;
} = globalThis.process ?? {};

/** Names this process for people: its host and its number, as far as it has them. */
export function processName(): string {
  return `${host.getBuiltinModule?.('node:os').hostname() ?? 'no-host'}:${host.pid ?? 0}`;
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

/** Calls `listener` whenever the process is asked to end. Does nothing where nobody can ask. */
export function onEndSignal(listener: () => void): void {
  for (const signal of ['SIGINT', 'SIGTERM']) host.on?.(signal, listener);
}

/** Undoes {@link onEndSignal}. */
export function offEndSignal(listener: () => void): void {
  for (const signal of ['SIGINT', 'SIGTERM']) host.off?.(signal, listener);
}

/** Whether this is the console of the runtime, or another that `new Console()` made. */
export function isConsole(logger: object): boolean {
  const Console = host.getBuiltinModule?.('node:console').Console;
  return logger === console || (Console !== undefined && logger instanceof Console);
}
