import { once } from 'node:events';
import { serve } from '@hono/node-server';
import type { ShopDatabase } from '../database.ts';
import { createShop } from '../shop.ts';

/** The shop on a free port of this machine. */
export async function openShop(db: ShopDatabase): Promise<{ url: string; close(): Promise<void> }> {
  const server = serve({ fetch: createShop(db).fetch, hostname: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The shop has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    async close() {
      server.close();
      await once(server, 'close');
    },
  };
}
