import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './run-program.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Builds the library and packs it, as `npm publish` would; answers the tarball and the paths in it. */
export async function packLibrary(into: string): Promise<{ tarball: string; files: string[] }> {
  await run('npm', ['run', 'build'], { cwd: root });
  const said = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', into], {
    cwd: root,
  });
  const [packed]: { filename: string; files: { path: string }[] }[] = JSON.parse(
    said.slice(said.indexOf('[')),
  );
  if (packed === undefined) throw new Error(`npm pack said nothing of a tarball:\n${said}`);
  return { tarball: join(into, packed.filename), files: packed.files.map(({ path }) => path).sort() };
}
