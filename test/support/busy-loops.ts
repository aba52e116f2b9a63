import { type ChildProcess, spawn } from 'node:child_process';

/** Twice the cores of a small machine: each worker, and the server, gets a third of a core at most. */
const LOOPS = 4;
/** Spins until its parent is gone, however that ended. */
const SPIN = 'const parent = process.ppid; while (process.ppid === parent) for (let i = 0; i < 1e7; i++);';

/** Before all tests: with `STRESS=1`, starts busy loops that run beside the tests. Returns what ends them. */
export default function setup(): () => void {
  const loops: ChildProcess[] = [];
  if (process.env.STRESS === '1') {
    for (let i = 0; i < LOOPS; i++) loops.push(spawn(process.execPath, ['-e', SPIN], { stdio: 'ignore' }));
  }
  return () => {
    for (const loop of loops) loop.kill('SIGKILL');
  };
}
