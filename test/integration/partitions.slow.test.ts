import { beforeAll, describe } from 'vitest';
import { partitionTables } from '../support/partitions.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { behaviours } from './behaviours.ts';

// A run on partitioned tables already does all of this, with every other test.
describe.skipIf(process.env.PARTITIONS)('tables partitioned by hash of the queue', () => {
  const database = useTestDatabase();
  beforeAll(() => partitionTables(database.url, 'hash'));
  behaviours(() => database.db, { url: () => database.url });
});
