import { readFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { assetTexts } from '../../scripts/bundle-dashboard.ts';
import { ASSETS } from '../../src/entries/dashboard/assets/bundled.ts';
import { fromZ85, toZ85 } from '../../src/entries/dashboard/assets/z85.ts';

test('what browsers get is what src/entries/dashboard/browser says: otherwise run `npm run assets`', async () => {
  const bundled = Object.fromEntries(
    Object.entries(ASSETS).map(([name, { gzip, length }]) => [
      name,
      gunzipSync(fromZ85(gzip, length)).toString(),
    ]),
  );
  expect(bundled).toEqual(await assetTexts());
});

test('bytes become a text and come back, however many', () => {
  // The example of the format's specification.
  expect(toZ85(Uint8Array.of(0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b))).toBe('HelloWorld');
  for (const length of [0, 1, 2, 3, 4, 5, 255, 256]) {
    const bytes = Uint8Array.from({ length }, (_, at) => 255 - at);
    expect(fromZ85(toZ85(bytes), length)).toEqual(bytes);
  }
});

test('the entry with its assets is at most 224 kB', async () => {
  const { outputFiles } = await build({
    entryPoints: ['src/entries/dashboard/index.ts'],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'node',
    external: ['drizzle-orm'],
  });
  expect(outputFiles[0]?.contents.byteLength).toBeLessThan(224_000);
});

test('every bundled package is named with its licence in the notices', async () => {
  const notices = await readFile('NOTICES.md', 'utf8');
  for (const name of ['croner', 'hono', 'uplot', 'idiomorph']) {
    expect(notices).toContain(
      (await readFile(`node_modules/${name}/LICENSE`, 'utf8')).replaceAll('\r', '').trim(),
    );
  }
});
