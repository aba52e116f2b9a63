import { severalWorkers } from './several-workers.ts';

severalWorkers([2, 5], ['postgres.js']);
severalWorkers([2, 5, 20], ['node-postgres, a pool']);
