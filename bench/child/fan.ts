import { nowMs } from './counter.ts';

/** Parents that begin when their children have ended. */
export interface FanRequest {
  readonly engine: FanName;
  readonly url: string;
  readonly options?: unknown;
  readonly parents: number;
  /** Of each parent. */
  readonly children: number;
}

/** Until all was put in, and until the last parent had run, in milliseconds; NaN when that took too long. */
export interface Fanned {
  readonly putMs: number;
  readonly allMs: number;
}

/** An engine of parents and children that works in this process. */
export interface Fan {
  put(parents: number, children: number): Promise<void>;
  close(): Promise<void>;
}

/** @param onParent to be called by the handler of each parent */
export type OpenFan = (request: FanRequest, onParent: () => void) => Promise<Fan>;

/** Loaded when asked for: a peer's memory is its own. */
const fans = {
  'drizzle-queue': async (): Promise<OpenFan> => (await import('../systems/drizzle-queue/fan.ts')).openFan,
  'pg-boss': async (): Promise<OpenFan> => (await import('../systems/pg-boss/fan.ts')).openFan,
  bullmq: async (): Promise<OpenFan> => (await import('../systems/bullmq/fan.ts')).openFan,
};

export type FanName = keyof typeof fans;

const LIMIT_MS = 60_000;

export async function measureFan(request: FanRequest): Promise<Fanned> {
  const { engine, parents, children } = request;
  const open = await fans[engine]();
  let missing = parents;
  let resolve: () => void = () => undefined;
  const done = new Promise<void>((all) => {
    resolve = all;
  });
  const fan = await open(request, () => {
    if (--missing === 0) resolve();
  });
  const startMs = nowMs();
  await fan.put(parents, children);
  const putMs = nowMs() - startMs;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), LIMIT_MS);
  });
  try {
    const isLate = (await Promise.race([done, late])) === 'late';
    return { putMs, allMs: isLate ? Number.NaN : nowMs() - startMs };
  } finally {
    clearTimeout(timer);
    await fan.close();
  }
}
