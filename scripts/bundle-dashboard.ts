/**
 * Bundles what the dashboard sends to browsers into one module of texts: `npm run assets`. The module is
 * committed, so that the sources run as they are; a test says when it is old.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, type Plugin } from 'esbuild';
import { toZ85 } from '../src/entries/dashboard/assets/z85.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const browser = `${root}src/entries/dashboard/browser`;

/** What browsers get, by name. */
export async function assetTexts(): Promise<Readonly<Record<string, string>>> {
  return {
    'app.js': await bundled(`${browser}/app.ts`, 'js'),
    'charts.js': await bundled(`${browser}/charts.ts`, 'js'),
    'style.css': await bundled(`${browser}/style.css`, 'css'),
    'icon.svg': readFileSync(`${browser}/icon.svg`, 'utf8').trim(),
  };
}

/** The text of the module: compressed texts are half as large, and most browsers take them as they are. */
async function bundledAssets(): Promise<string> {
  const texts = await assetTexts();
  const lines = Object.entries(texts).map(([name, text]) => {
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 10);
    const gzip = gzipSync(text, { level: 9 });
    return `  ${JSON.stringify(name)}: { hash: '${hash}', length: ${gzip.length}, gzip: '${toZ85(gzip)}' },`;
  });
  return [
    '// Made by `npm run assets` from src/entries/dashboard/browser, uPlot and idiomorph: see NOTICES.md.',
    'export const ASSETS = {',
    ...lines,
    '} as const;',
    '',
  ].join('\n');
}

/** Of uPlot, what it keeps because it assigns it to an object. */
const ASSIGNED = [
  ...['paths.stepped', 'paths.spline'],
  ...['uPlot.join', 'uPlot.fmtDate', 'uPlot.tzDate', 'uPlot.rangeLog', 'uPlot.rangeAsinh'],
];
/** What it keeps because other options would call it. */
const UNCALLED = [
  ...['fmtDate', 'timeAxisStamps', 'timeAxisVals', 'timeAxisVal', 'timeSeriesStamp', 'timeSeriesVal'],
  ...['rangeLog', 'rangeAsinh', 'logAxisSplits', 'asinhAxisSplits', 'log10AxisValsFilt', 'log2AxisValsFilt'],
  'clipBandLine',
];

/** The charts have bars, straight lines and even scales, and write their own times. The rest is left out. */
const leanPlot: Plugin = {
  name: 'without the parts of uPlot that no chart has',
  setup({ onLoad }) {
    onLoad({ filter: /uPlot\.esm\.js$/ }, ({ path }) => {
      let contents = readFileSync(path, 'utf8');
      const leaveOut = (name: string, pattern: string, instead: string) => {
        const found = new RegExp(pattern, 'm');
        if (!found.test(contents)) throw new Error(`uPlot has no ${name}`);
        contents = contents.replace(found, instead);
      };
      for (const name of ASSIGNED) leaveOut(name, `^\\s*\\(?${name}\\s*= \\w+\\)?;$`, '');
      for (const name of UNCALLED) leaveOut(name, `^function ${name}\\([^]*?^\\}$`, `function ${name}() {}`);
      return { contents, loader: 'js' };
    });
  },
};

async function bundled(entry: string, kind: 'js' | 'css'): Promise<string> {
  const plot = readFileSync(`${root}node_modules/uplot/dist/uPlot.min.css`, 'utf8');
  const { outputFiles } = await build({
    ...(kind === 'js'
      ? { entryPoints: [entry] }
      : { stdin: { contents: plot + readFileSync(entry, 'utf8'), loader: 'css' as const } }),
    bundle: true,
    minify: true,
    write: false,
    charset: 'utf8',
    legalComments: 'none',
    plugins: [leanPlot],
    format: 'iife',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    tsconfig: `${root}tsconfig.browser.json`,
  });
  return (outputFiles[0]?.text ?? '').trim();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(`${root}src/entries/dashboard/assets/bundled.ts`, await bundledAssets());
}
