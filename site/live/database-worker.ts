/** The page's PostgreSQL: PGlite, in a Web Worker of its own. It serves connections, each a port. */
import { PGlite } from '@electric-sql/pglite';
import type { Control } from './protocol.ts';
import { ServedConnection } from './served-connection.ts';

const database = PGlite.create();
const connections = new Map<number, ServedConnection>();

addEventListener('message', ({ data }: MessageEvent<Control>) => {
  if (data.type === 'connected') {
    connections.set(data.connection, new ServedConnection(database, data.port));
  } else {
    connections.get(data.connection)?.break();
    connections.delete(data.connection);
  }
});
