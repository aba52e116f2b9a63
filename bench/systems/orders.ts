import postgres from 'postgres';
import { createOrders } from '../child/orders.ts';
import type { System } from '../harness/system.ts';

/** The system with a table of the app beside its own, which handlers write to. */
export function withOrders(system: System): System {
  return {
    ...system,
    async create(url) {
      await system.create(url);
      const sql = postgres(url, { max: 1 });
      await sql.unsafe(createOrders);
      await sql.end();
    },
  };
}
