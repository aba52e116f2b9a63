select date_part('epoch', statement_timestamp()) * 1000 as now
