import { readFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { assetTexts } from '../../scripts/bundle-dashboard.ts';
import { ASSETS } from '../../src/entries/dashboard/assets/bundled.ts';

test('what browsers get is what src/entries/dashboard/browser says: otherwise run `npm run assets`', async () => {
  const bundled = Object.fromEntries(
    Object.entries(ASSETS).map(([name, { gzip }]) => [
      name,
      gunzipSync(Buffer.from(gzip, 'base64')).toString(),
    ]),
  );
  expect(bundled).toEqual(await assetTexts());
});

test('the entry with its assets is at most 220 kB', async () => {
  const { outputFiles } = await build({
    entryPoints: ['src/entries/dashboard/index.ts'],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'node',
    external: ['drizzle-orm'],
  });
  expect(outputFiles[0]?.contents.byteLength).toBeLessThan(220_000);
});

test('every bundled package is named with its licence in the notices', async () => {
  const notices = await readFile('NOTICES.md', 'utf8');
  for (const name of ['croner', 'hono', 'uplot', 'idiomorph']) {
    expect(notices).toContain(
      (await readFile(`node_modules/${name}/LICENSE`, 'utf8')).replaceAll('\r', '').trim(),
    );
  }
});
