import type { Scenario } from './scenario.ts';

/** What `all` runs, in this order. Loaded when asked for: what one needs, another need not load. */
export const scenarios: Readonly<Record<string, () => Promise<Scenario>>> = {
  drain: async () => (await import('./scenarios/drain.ts')).drain,
  pinned: async () => (await import('./scenarios/pinned.ts')).pinned,
  scheduled: async () => (await import('./scenarios/scheduled/scenario.ts')).scheduled,
  handlers: async () => (await import('./scenarios/handlers.ts')).handlers,
  transactional: async () => (await import('./scenarios/transactional.ts')).transactional,
  enqueue: async () => (await import('./scenarios/enqueue/scenario.ts')).enqueue,
  latency: async () => (await import('./scenarios/latency/scenario.ts')).latency,
  concurrency: async () => (await import('./scenarios/concurrency.ts')).concurrency,
  idle: async () => (await import('./scenarios/idle.ts')).idle,
  'last-attempt': async () => (await import('./scenarios/last-attempt.ts')).lastAttempt,
  control: async () => (await import('./scenarios/control/scenario.ts')).control,
  limits: async () => (await import('./scenarios/limits/scenario.ts')).limits,
  memory: async () => (await import('./scenarios/memory.ts')).memory,
  workflows: async () => (await import('./scenarios/workflows/scenario.ts')).workflows,
  mixed: async () => (await import('./scenarios/mixed.ts')).mixed,
};
