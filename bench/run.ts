/**
 * Runs one scenario, or all: `npm run bench -- SCENARIO [--quick] [--check]`. Installs what the benches need, once, and goes on
 * in `main.ts` with the Node.js that came with it: some of the peers do not run on the oldest that this library supports.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { installBench, node } from './install.ts';

installBench();
const main = spawn(
  node,
  ['--import', 'tsx', fileURLToPath(new URL('main.ts', import.meta.url)), ...process.argv.slice(2)],
  { cwd: fileURLToPath(new URL('..', import.meta.url)), stdio: 'inherit' },
);
// A Ctrl-C goes to both processes; this one waits until the other has put its servers away.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => main.kill('SIGTERM'));
main.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
