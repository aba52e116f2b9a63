/** Where a program finds its database, and whom it tells about each job. */
export interface Stage {
  readonly url: string;
  /** To be called once by the handler of each job with the number that is in its payload. */
  onJob(n: number): void;
}

/** Begins to work off jobs; what it answers ends that in good order. */
export type Program = (stage: Stage, options: unknown) => Promise<() => Promise<void>>;

/** What may run in a measured process, by name. Loaded when asked for: a peer's memory is its own. */
export const programs = {
  'drizzle-queue': async (): Promise<Program> => (await import('../systems/drizzle-queue/work.ts')).work,
  timers: async (): Promise<Program> => (await import('../systems/limit/timers.ts')).work,
  limit: async (): Promise<Program> => (await import('../systems/limit/work.ts')).work,
  'graphile-worker': async (): Promise<Program> => (await import('../systems/graphile-worker/work.ts')).work,
  'pg-boss': async (): Promise<Program> => (await import('../systems/pg-boss/work.ts')).work,
  bullmq: async (): Promise<Program> => (await import('../systems/bullmq/work.ts')).work,
};

export type ProgramName = keyof typeof programs;

/** Measures something in the process that it is called in; takes and answers what can be sent between processes. */
export type Measurement = (request: never) => Promise<unknown>;

/** What else a measured process can be told to do. */
export const measurements = {
  claims: async (): Promise<Measurement> =>
    (await import('../scenarios/scheduled/time-claims.ts')).timeClaims,
  groupClaims: async (): Promise<Measurement> =>
    (await import('../scenarios/limits/time-group-claims.ts')).timeGroupClaims,
  transactions: async (): Promise<Measurement> =>
    (await import('../scenarios/enqueue/transactions.ts')).transactions,
  single: async (): Promise<Measurement> => (await import('../scenarios/enqueue/single.ts')).single,
  bulk: async (): Promise<Measurement> => (await import('../scenarios/enqueue/bulk.ts')).bulk,
  arrivals: async (): Promise<Measurement> => (await import('../scenarios/latency/arrivals.ts')).arrivals,
  fan: async (): Promise<Measurement> => (await import('./fan.ts')).measureFan,
  workflows: async (): Promise<Measurement> => (await import('../scenarios/workflows/act.ts')).act,
};

export type MeasurementName = keyof typeof measurements;
