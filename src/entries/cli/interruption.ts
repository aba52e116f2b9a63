const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** What a command learns of Ctrl-C, so that it ends cleanly. */
export interface Interruption {
  readonly signal: AbortSignal;
  /** Lets signals end the process again, as they do by themselves. */
  forget(): void;
}

/** Aborts at the first Ctrl-C, SIGTERM or hang-up; a second one ends the process at once. */
export function untilInterrupted(): Interruption {
  const interrupted = new AbortController();
  const stop = () => {
    if (interrupted.signal.aborted) process.exit(130);
    interrupted.abort(new InterruptedError());
  };
  for (const name of SIGNALS) process.on(name, stop);
  return {
    signal: interrupted.signal,
    forget: () => {
      for (const name of SIGNALS) process.off(name, stop);
    },
  };
}

/** The reason of an interruption's signal. */
export class InterruptedError extends Error {
  override name = 'InterruptedError';

  constructor() {
    super('interrupted');
  }
}

/** Waits, unless the signal comes first. */
export async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
