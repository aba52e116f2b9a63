import { once } from 'node:events';
import { serve } from '@hono/node-server';
import { createDashboard } from 'drizzle-queue/dashboard';
import type { ShopDatabase } from '../database.ts';
import { queue } from '../jobs.ts';

const BASE = '/admin/queue';

/** The dashboard of the shop's queues on a free port of this machine. */
export async function openDashboard(db: ShopDatabase): Promise<{ url: string; close(): Promise<void> }> {
  const server = serve({ fetch: (request) => dashboard(request), hostname: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The dashboard has no port');
  const host = `127.0.0.1:${address.port}`;
  const dashboard = createDashboard({
    db,
    queue,
    basePath: BASE,
    title: 'Shop',
    // Who can reach this machine's own ports may do everything. A real shop asks who it is.
    authorize: () => 'write',
    hosts: [host],
  });
  return {
    url: `http://${host}${BASE}`,
    async close() {
      server.close();
      await once(server, 'close');
    },
  };
}
