#!/usr/bin/env node
/** The command `drizzle-queue`. */
import { readFileSync } from 'node:fs';
import { main } from './main.ts';

// A reader such as `head` may leave before the end: that is no error of ours.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (stream === process.stdout) process.exit(0);
  });
}

const { version }: { version: string } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
);
const code = await main(process.argv.slice(2), version);
// Whatever the app's modules have left open must not keep a command that has answered.
process.stdout.write('', () => process.exit(code));
