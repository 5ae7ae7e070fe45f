# gdb runs this when it loads libramet.so.
import gdb

gdb.execute("source /usr/share/ramet/gdb/ramet_gdb.py")
