import chatapp.models.generation
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chatapp', '0003_readiness'),
    ]

    operations = [
        # In two steps, for adding a field with a callable default would give all rows of today one key.
        migrations.AddField(
            model_name='generation',
            name='stop_key',
            field=models.CharField(blank=True, db_default='', default='', max_length=32),
        ),
        migrations.AlterField(
            model_name='generation',
            name='stop_key',
            field=models.CharField(blank=True, db_default='', default=chatapp.models.generation.new_stop_key, max_length=32),
        ),
    ]
