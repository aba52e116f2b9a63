import { neon, neonConfig } from '@neondatabase/serverless';
import { drizzle } from 'drizzle-orm/neon-http';
import { createQueue } from 'drizzle-queue';
import { welcome } from './welcome.ts';

/** What workerd hands over, as Cloudflare's Workers have it. */
interface Environment {
  readonly DATABASE_URL: string;
  /** `host:port` of what stands for Neon. */
  readonly NEON: string;
}

const queue = createQueue();

/** An edge function that only enqueues; it answers with the ids, and with what it finds under the first. */
export default {
  async fetch(_request: Request, { DATABASE_URL, NEON }: Environment): Promise<Response> {
    neonConfig.fetchEndpoint = `http://${NEON}/sql`;
    const db = drizzle({ client: neon(DATABASE_URL) });
    const first = await queue.enqueue(db, welcome, { user: 1 });
    const others = await queue.enqueueMany(db, welcome, [{ payload: { user: 2 } }, { payload: { user: 3 } }]);
    const found = await queue.find(db, welcome, first.id);
    return Response.json({ ids: [first.id, ...others.map(({ id }) => id)], found: found?.payload });
  },
};
