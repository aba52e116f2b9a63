export { whileLocked } from '../../../core/time/while-locked.ts';
