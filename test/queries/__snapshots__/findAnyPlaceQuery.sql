select min("queue_batches"."id")::float8 as low, max("queue_batches"."id")::float8 as high from "queue_batches"
