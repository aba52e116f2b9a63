import { severalWorkers, useSharedDatabase } from './several-workers.ts';

useSharedDatabase();
severalWorkers([2, 5], ['postgres.js']);
severalWorkers([2, 5, 20], ['node-postgres, a pool']);
