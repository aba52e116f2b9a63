import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';

/** What the figures were measured on, and with which versions. */
export function machine(): string[] {
  const [cpu] = cpus();
  const packages = ['graphile-worker', 'pg-boss', 'bullmq', 'pg'].map(
    (name) => `${name} ${benchVersion(name)}`,
  );
  const own = ['drizzle-orm', 'postgres'].map((name) => `${name} ${versionOf(`../../node_modules/${name}`)}`);
  return [
    `${cpus().length} cores of ${cpu?.model.trim() ?? 'an unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GB, ${type()} ${release()}`,
    `Node.js ${process.versions.node}, drizzle-queue ${versionOf('../..')}, ${[...own, ...packages].join(', ')}`,
  ];
}

/** The version of a package that the benches install. */
export function benchVersion(name: string): string {
  return versionOf(`../node_modules/${name}`);
}

function versionOf(directory: string): string {
  const file = new URL(`${directory}/package.json`, import.meta.url);
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'));
  return version;
}
