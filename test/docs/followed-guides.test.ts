import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { readGuide } from '../package/support/read-guide.ts';
import { followedGuides } from './followed-guides.ts';
import { root } from './pages.ts';

test.each(Object.entries(followedGuides))('every step of %s is followed by a test', (page, file) => {
  const text = readFileSync(join(root, file), 'utf8');
  const name = basename(page, '.md');
  expect(text).toContain(`'${name}'`);
  for (const [heading, steps] of readGuide(name)) {
    // A test that takes several pages names the headings of each.
    if (steps.length > 0) expect(text, `${page}, "${heading}"`).toContain(`'${heading}'`);
  }
});
