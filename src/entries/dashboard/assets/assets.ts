import { takesGzip } from '../answer.ts';
import { ASSETS } from './bundled.ts';
import { fromZ85 } from './z85.ts';

export type AssetName = keyof typeof ASSETS;

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Where an asset is: its name has the hash of its content, so it never changes. */
export function assetPath(name: AssetName): string {
  return `/assets/${name.replace('.', `.${ASSETS[name].hash}.`)}`;
}

/** The asset at a path; `undefined` when there is none. */
export async function assetAnswer(request: Request, path: string): Promise<Response | undefined> {
  const names = Object.keys(ASSETS) as AssetName[]; // The object has no other keys.
  const name = names.find((name) => assetPath(name) === path);
  if (name === undefined) return undefined;
  const headers = new Headers({
    'content-type': TYPES[name.split('.').at(-1) ?? ''] ?? 'text/plain',
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'accept-encoding',
  });
  const { gzip, length } = ASSETS[name];
  const bytes = fromZ85(gzip, length);
  if (!takesGzip(request)) return new Response(await inflated(bytes), { headers });
  headers.set('content-encoding', 'gzip');
  return new Response(bytes, { headers });
}

async function inflated(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  return await new Response(
    new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')),
  ).arrayBuffer();
}
