import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A running `worker.ts`. */
export interface WorkerProcess {
  readonly pid: number;
  /** Asks it to stop, as a deploy would, and returns how it ended: its exit code, or the signal that killed it. */
  stop(): Promise<number | NodeJS.Signals>;
}

/** How long a worker may take to stop before it is killed. */
const PATIENCE_MS = 8_000;

/** Starts a worker in a process of its own. `onCrash` is called when it ends without having been asked to. */
export function startWorkerProcess(databaseUrl: string, onCrash: (error: Error) => void): WorkerProcess {
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--import', path('leash.ts'), path('../worker.ts')],
    {
      env: { ...process.env, DATABASE_URL: databaseUrl },
      // Its own process group: on Ctrl-C the demo decides when the workers stop.
      detached: true,
      // The channel is the leash.
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    },
  );
  let stopping = false;
  const exit = once(child, 'exit').then(([code, signal]) => (signal ?? code) as number | NodeJS.Signals);
  exit.then(
    (how) => stopping || onCrash(new Error(`Worker process ${child.pid} ended by itself: ${how}`)),
    onCrash,
  );
  return {
    pid: child.pid ?? 0,
    async stop() {
      stopping = true;
      child.kill('SIGTERM');
      const patience = new AbortController();
      delay(PATIENCE_MS, undefined, { signal: patience.signal }).then(
        () => child.kill('SIGKILL'),
        () => undefined,
      );
      return await exit.finally(() => patience.abort());
    },
  };
}

function path(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
