select min("queue_steps"."job_id")::float8 as low, max("queue_steps"."job_id")::float8 as high from "queue_steps"
