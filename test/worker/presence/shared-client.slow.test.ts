import { severalWorkers, useSharedDatabase } from './several-workers.ts';

useSharedDatabase();
// Here they share one connection for their sessions; the others are in the slow tests.
severalWorkers([20], ['postgres.js']);
