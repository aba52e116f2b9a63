import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './run-program.ts';
import { tools } from './tools.ts';

/**
 * Bundles the text of a module, as if it stood in a project; answers the minified code that is loaded with it, and not what is
 * imported later, on demand.
 */
export type Bundler = (project: string, entry: string) => Promise<string>;

// Drizzle is in the app anyway. And not "for Node.js": bundlers drop its modules by themselves when nothing of them is used.
const bundlers = {
  esbuild: [
    tools.esbuild,
    ...[
      'entry.js',
      '--bundle',
      '--minify',
      '--format=esm',
      '--platform=neutral',
      '--splitting',
      '--outdir=out',
    ],
    ...['drizzle-orm', 'drizzle-orm/*', 'node:*'].map((name) => `--external:${name}`),
  ],
  rolldown: [tools.rolldown, '-c', 'rolldown.config.mjs'],
};

const ROLLDOWN_CONFIG = `export default {
  input: 'entry.js',
  platform: 'neutral',
  external: [/^drizzle-orm/, /^node:/],
  output: { dir: 'out', format: 'esm', minify: true },
};
`;

function bundler([program = '', ...args]: readonly string[]): Bundler {
  return async (project, entry) => {
    const folder = await mkdtemp(join(project, 'bundle-'));
    try {
      await writeFile(join(folder, 'entry.js'), entry);
      await writeFile(join(folder, 'rolldown.config.mjs'), ROLLDOWN_CONFIG);
      await run(program, args, { cwd: folder });
      return await loaded(join(folder, 'out'));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };
}

/** The code of the entry and of the chunks that it imports statically. */
async function loaded(out: string): Promise<string> {
  const codes = new Map<string, string>();
  const read = async (name: string): Promise<void> => {
    if (codes.has(name)) return;
    const code = await readFile(join(out, name), 'utf8');
    codes.set(name, code);
    for (const [, chunk = ''] of code.matchAll(/\b(?:from|import)\s*"\.\/([^"]+)"/g)) await read(chunk);
  };
  await read('entry.js');
  return [...codes.values()].join('\n');
}

export const byEsbuild = bundler(bundlers.esbuild);
export const byRolldown = bundler(bundlers.rolldown);
