import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { homepage, root } from '../../../site/repository.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

export const dist = join(root, 'site/dist');

/** Serves the built site below its path, as GitHub Pages does: a page is found without its `.html`. */
export async function serveSite(): Promise<{ readonly origin: string; readonly close: () => void }> {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const path = pathname.startsWith(homepage.pathname) && pathname.slice(homepage.pathname.length);
    const file = path === false ? undefined : await fileAt(normalize(decodeURI(path)));
    response.writeHead(file === undefined ? 404 : 200, {
      'content-type': TYPES[extname(file ?? '.html')] ?? 'application/octet-stream',
    });
    response.end(await readFile(file ?? join(dist, '404.html')));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // It listens on a port.
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function fileAt(path: string): Promise<string | undefined> {
  if (path.startsWith('..')) return undefined;
  for (const candidate of [path, `${path}.html`, join(path, 'index.html')]) {
    const file = join(dist, candidate);
    if (
      await stat(file).then(
        (found) => found.isFile(),
        () => false,
      )
    )
      return file;
  }
  return undefined;
}
