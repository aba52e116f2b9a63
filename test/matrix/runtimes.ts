import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Runtime } from './combinations.ts';

const folder = fileURLToPath(new URL('node_modules/', import.meta.url));

/** The program of a runtime, or `undefined` where npm has it not for this platform. */
export function programOf(runtime: Runtime): string | undefined {
  const path = runtime === 'Bun' ? bun() : node(runtime.slice('Node '.length));
  return path !== undefined && existsSync(path) ? path : undefined;
}

function node(major: string): string | undefined {
  const installed = join(folder, `node-${major}-${process.platform}-${process.arch}`, 'bin/node');
  if (existsSync(installed)) return installed;
  return process.versions.node.startsWith(`${major}.`) ? process.execPath : undefined;
}

function bun(): string | undefined {
  try {
    return join(dirname(createRequire(import.meta.url).resolve('bun/package.json')), 'bin/bun.exe');
  } catch {
    return undefined;
  }
}
