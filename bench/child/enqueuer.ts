/** Puts jobs in, in a measured process. */
export interface Enqueuer {
  /** One job, due at once; resolves when its commit is answered. */
  enqueue(n: number): Promise<void>;
  /** A transaction that inserts an order and enqueues a job; undefined where that is impossible. */
  readonly order?: (n: number) => Promise<void>;
  /** One job whose transaction stays open for so long after the enqueue; undefined where that is impossible. */
  readonly late?: (n: number, openMs: number) => Promise<void>;
  /** So many jobs at once. */
  many(from: number, count: number): Promise<void>;
  close(): Promise<void>;
}

export interface EnqueuerRequest {
  readonly enqueuer: EnqueuerName;
  readonly url: string;
  readonly connections: number;
  readonly options?: unknown;
}

export type OpenEnqueuer = (request: EnqueuerRequest) => Promise<Enqueuer>;

/** Loaded when asked for. */
const enqueuers = {
  'drizzle-queue': async (): Promise<OpenEnqueuer> =>
    (await import('../systems/drizzle-queue/enqueue.ts')).openEnqueuer,
  'graphile-worker': async (): Promise<OpenEnqueuer> =>
    (await import('../systems/graphile-worker/enqueue.ts')).openEnqueuer,
  'pg-boss': async (): Promise<OpenEnqueuer> => (await import('../systems/pg-boss/enqueue.ts')).openEnqueuer,
  bullmq: async (): Promise<OpenEnqueuer> => (await import('../systems/bullmq/enqueue.ts')).openEnqueuer,
};

export type EnqueuerName = keyof typeof enqueuers;

export async function openEnqueuer(request: EnqueuerRequest): Promise<Enqueuer> {
  const open = await enqueuers[request.enqueuer]();
  return await open(request);
}
