#!/usr/bin/env node
/** The command `drizzle-queue`. */
import { readFileSync } from 'node:fs';
import { outliveReaders } from './broken-pipe.ts';
import { main } from './main.ts';

outliveReaders();
// Beside the folder of the built files.
const { version }: { version: string } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
);
const code = await main(process.argv.slice(2), version);
// Whatever the app's modules have left open must not keep a command that has answered.
process.stdout.write('', () => process.exit(code));
