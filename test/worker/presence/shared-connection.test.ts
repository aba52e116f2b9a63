import { severalWorkers } from './several-workers.ts';

severalWorkers([20]);
