import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The repository's folder. */
export const root = fileURLToPath(new URL('..', import.meta.url));

const manifest: { homepage: string; repository: { url: string } } = JSON.parse(
  readFileSync(`${root}package.json`, 'utf8'),
);

/** Where the site is read, and the repository; package.json says both, and nothing else does. */
export const homepage = new URL(manifest.homepage);
export const repository = manifest.repository.url.replace(/^git\+/, '').replace(/\.git$/, '');
