import { unreachableDatabase } from './unreachable-database.ts';

unreachableDatabase('node-postgres');
