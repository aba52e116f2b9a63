import { manyWorkers } from './many-workers.ts';

manyWorkers(20);
