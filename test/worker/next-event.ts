import type { Worker, WorkerEvents } from 'drizzle-queue';

/** The arguments of the next event of a kind, or of the next one that satisfies a condition. */
export function nextEvent<K extends keyof WorkerEvents>(
  worker: Pick<Worker, 'on' | 'off'>,
  event: K,
  condition: (...args: WorkerEvents[K]) => boolean = () => true,
): Promise<WorkerEvents[K]> {
  return new Promise((resolve) => {
    const listener = (...args: WorkerEvents[K]) => {
      if (!condition(...args)) return;
      worker.off(event, listener);
      resolve(args);
    };
    worker.on(event, listener);
  });
}
