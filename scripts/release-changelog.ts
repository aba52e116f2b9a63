/**
 * The changelog's part in a release. `tsx scripts/release-changelog.ts date` makes what is under "Unreleased" the section of
 * package.json's version; `notes` prints that section. The rest of CHANGELOG.md is written by hand.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { dated, sectionOf } from './changelog-sections.ts';

const file = fileURLToPath(new URL('../CHANGELOG.md', import.meta.url));
const manifest = fileURLToPath(new URL('../package.json', import.meta.url));
const { version }: { version: string } = JSON.parse(readFileSync(manifest, 'utf8'));
const text = readFileSync(file, 'utf8');

switch (process.argv[2]) {
  case 'date':
    writeFileSync(file, dated(text, version, new Date().toISOString().slice(0, 10)));
    break;
  case 'notes':
    console.log(sectionOf(text, version));
    break;
  default:
    throw new Error('Usage: tsx scripts/release-changelog.ts date | notes');
}
