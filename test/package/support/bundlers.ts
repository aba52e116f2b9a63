import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './run-program.ts';
import { tools } from './tools.ts';

/** Bundles the text of a module, as if it stood in a project; answers the minified code. */
export type Bundler = (project: string, entry: string) => Promise<string>;

// Drizzle is in the app anyway. And not "for Node.js": bundlers drop its modules by themselves when nothing of them is used.
const bundlers = {
  esbuild: [
    tools.esbuild,
    ...['entry.js', '--bundle', '--minify', '--format=esm', '--platform=neutral', '--outfile=out/entry.js'],
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
      return await readFile(join(folder, 'out', 'entry.js'), 'utf8');
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };
}

export const byEsbuild = bundler(bundlers.esbuild);
export const byRolldown = bundler(bundlers.rolldown);
