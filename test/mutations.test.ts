import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { mutations, pattern } from './faults/mutation-list.ts';

// `npm run test:faults:mutations` takes hours, and stops at the first that is out of date.
test.each(mutations)('the mutation "$name" is of the source as it is', async ({ edits }) => {
  for (const { file, text } of edits) {
    const source = await readFile(new URL(`../${file}`, import.meta.url), 'utf8');
    expect(pattern(text).test(source), `${file} contains ${text}`).toBe(true);
  }
});
