import { severalWorkers } from './several-workers.ts';

severalWorkers([2, 5]);
